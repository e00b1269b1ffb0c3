import { Router, type Request, type Response } from 'express';
import type { Database } from 'better-sqlite3';
import { getTodo, insertTodo, listTodos, overdueTodos, updateTodo, type Todo } from '../db/todos.js';
import { newTodo, validate } from '../middleware/validate.js';

function sendTodo(res: Response, todo: Todo | undefined): void {
  if (!todo) {
    res.status(404).json({ error: { code: 'not_found', message: 'There is no such todo' } });
    return;
  }
  res.json(todo);
}

export function todoRoutes(db: Database): Router {
  const router = Router();

  router.get('/', (req: Request, res: Response): void => {
    const limit = Number(req.query.limit ?? 50);
    if (!Number.isInteger(limit) || limit < 1 || limit > 100) {
      res.status(400).json({ error: { code: 'bad_limit', message: 'limit must be 1 to 100' } });
      return;
    }
    res.json(listTodos(db, limit));
  });
  router.post('/', validate(newTodo), (req: Request, res: Response): void => {
    res.status(201).json(insertTodo(db, req.body));
  });
  // Before '/:id', which would take 'overdue' for an id.
  router.get('/overdue', (_req: Request, res: Response): void => {
    res.json(overdueTodos(db, new Date()));
  });
  router.get('/:id', (req: Request, res: Response): void => {
    sendTodo(res, getTodo(db, Number(req.params.id)));
  });
  router.patch('/:id', (req: Request, res: Response): void => {
    sendTodo(res, updateTodo(db, Number(req.params.id), req.body));
  });
  return router;
}
