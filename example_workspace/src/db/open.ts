import Database from 'better-sqlite3';

// `due` is ISO 8601 text in UTC, so that comparing strings compares moments.
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS todos (
    id    INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    done  INTEGER NOT NULL DEFAULT 0,
    due   TEXT
  ) STRICT`;

export function openDatabase(path = process.env.TODO_DB ?? 'data/todos.db'): Database.Database {
  const db = new Database(path);
  db.exec(SCHEMA);
  return db;
}
