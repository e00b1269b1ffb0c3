import { Router, type Request, type Response } from 'express';
import type { Database } from 'better-sqlite3';

export function healthRoutes(db: Database): Router {
  const router = Router();

  router.get('/', (_req: Request, res: Response): void => {
    try {
      db.prepare('SELECT 1').get();
      res.json({ status: 'ok' });
    } catch {
      res.status(503).json({ status: 'unavailable' });
    }
  });
  return router;
}
