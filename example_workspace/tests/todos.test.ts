import request from 'supertest';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createApp } from '../src/app.js';
import { openDatabase } from '../src/db/open.js';

const db = openDatabase();
const app = createApp(db);

beforeEach(() => db.exec('DELETE FROM todos'));

describe('creating and listing', () => {
  it('lists what was created', async () => {
    await request(app).post('/api/todos').send({ title: 'Water the plants' }).expect(201);
    const { body } = await request(app).get('/api/todos').expect(200);
    expect(body).toMatchObject([{ title: 'Water the plants', done: false, due: null }]);
  });

  it.each([{}, { title: ' ' }, { title: 'x', due: 'soon' }])('refuses %j', async (body) => {
    const response = await request(app).post('/api/todos').send(body).expect(400);
    expect(response.body.error.code).toBe('bad_request');
  });
});

describe('overdue', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-01-13T00:15:00Z') }));
  afterEach(() => vi.useRealTimers());

  it('is what is due before this moment and not done', async () => {
    await request(app).post('/api/todos').send({ title: 'late', due: '2026-01-12T23:45:00Z' });
    await request(app).post('/api/todos').send({ title: 'not yet', due: '2026-01-13T00:30:00Z' });
    const { body } = await request(app).get('/api/todos/overdue').expect(200);
    expect(body.map((todo: { title: string }) => todo.title)).toEqual(['late']);
  });
});
