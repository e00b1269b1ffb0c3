import type { NextFunction, Request, RequestHandler, Response } from 'express';

export interface BodyCheck {
  /** Throws a BadRequest if the body does not fit. */
  check(body: Record<string, unknown>): void;
}

export class BadRequest extends Error {}

export const newTodo: BodyCheck = {
  check(body): void {
    if (typeof body.title !== 'string' || body.title.trim() === '') {
      throw new BadRequest('title must be a text that is not empty');
    }
    if (body.due != null && Number.isNaN(Date.parse(String(body.due)))) {
      throw new BadRequest('due must be an ISO 8601 date and time');
    }
  },
};

export function validate(rule: BodyCheck): RequestHandler {
  return (req: Request, res: Response, next: NextFunction): void => {
    try {
      rule.check(req.body ?? {});
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      res.status(400).json({ error: { code: 'bad_request', message: error.message } });
      return;
    }
    next();
  };
}
