#!/bin/sh
# Restore a backup of the team server into a database that is empty.
#
#   deploy/restore.sh FILE postgresql://postgres@db/loki_new
#
# The role that owns the database must exist in the cluster, as it did where the backup was made. All
# or nothing: a restore that stops leaves the database empty. Serve from it afterwards; the first fetch brings every
# repository to its present commit.
set -eu

file=${1:?"usage: restore.sh FILE DATABASE"}
database=${2:?"usage: restore.sh FILE DATABASE"}

psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 "$database" << 'SQL'
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'loki') THEN
    RAISE EXCEPTION 'this database has memory already; name an empty one';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'loki_memory_requests') THEN
    CREATE ROLE loki_memory_requests NOLOGIN NOBYPASSRLS;
  END IF;
END $$;
SQL
pg_restore --exit-on-error --single-transaction --dbname="$database" "$file"
