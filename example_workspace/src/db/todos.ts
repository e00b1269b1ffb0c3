import type { Database } from 'better-sqlite3';
import type { components } from '../types/api.js';

export type Todo = components['schemas']['Todo'];
export type NewTodo = components['schemas']['NewTodo'];
export type TodoChange = components['schemas']['TodoChange'];
type Row = { id: number; title: string; done: 0 | 1; due: string | null };

const fromRow = (row: Row): Todo => ({ ...row, done: row.done === 1 });

export function listTodos(db: Database, limit: number): Todo[] {
  return db.prepare<[number], Row>('SELECT * FROM todos ORDER BY id LIMIT ?').all(limit).map(fromRow);
}

export function overdueTodos(db: Database, now: Date): Todo[] {
  const sql = 'SELECT * FROM todos WHERE done = 0 AND due < ? ORDER BY due';
  return db.prepare<[string], Row>(sql).all(now.toISOString()).map(fromRow);
}

export function getTodo(db: Database, id: number): Todo | undefined {
  const row = db.prepare<[number], Row>('SELECT * FROM todos WHERE id = ?').get(id);
  return row && fromRow(row);
}

export function insertTodo(db: Database, { title, due = null }: NewTodo): Todo {
  const { lastInsertRowid } = db.prepare('INSERT INTO todos (title, due) VALUES (?, ?)').run(title, due);
  return { id: Number(lastInsertRowid), title, done: false, due };
}

export function updateTodo(db: Database, id: number, change: TodoChange): Todo | undefined {
  const todo = getTodo(db, id);
  if (!todo) return undefined;
  const next = { ...todo, ...change };
  const sql = 'UPDATE todos SET title = ?, done = ?, due = ? WHERE id = ?';
  db.prepare(sql).run(next.title, next.done ? 1 : 0, next.due, id);
  return next;
}
