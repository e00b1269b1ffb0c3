import { resolve } from 'node:path';
import express, { type Express, type Request, type Response } from 'express';
import type { Database } from 'better-sqlite3';
import { healthRoutes } from './routes/health.js';
import { todoRoutes } from './routes/todos.js';

const WEB = resolve('web/dist');

export function createApp(db: Database): Express {
  const app = express();
  app.use(express.json({ limit: '100kb' }));
  app.use('/api/todos', todoRoutes(db));
  app.use('/api/health', healthRoutes(db));
  app.use(express.static(WEB));
  // The web client does its own routing: every other page is its index.
  app.get('/{*path}', (req: Request, res: Response): void => {
    if (req.path.startsWith('/api/')) {
      res.status(404).json({ error: { code: 'not_found', message: `No ${req.path} here` } });
      return;
    }
    res.sendFile('index.html', { root: WEB });
  });
  return app;
}
