"""The team server: a projection of git repositories on PostgreSQL, asked over HTTP.

Git stays the truth. The server fetches repositories, reads the memory of one branch of each out of
git's objects, and keeps it as rows with the commit that they come from. What clients push because
it lies on no shared branch is kept beside it, with the origin `import` at most. The database may be
dropped: served again, the same repositories give the same answers.

Access is decided by PostgreSQL: row-level security is forced on every table, and the role that
answers requests sees the rows of those repositories that the token of the request was granted.
"""
