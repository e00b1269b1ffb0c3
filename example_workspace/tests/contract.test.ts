import { readFileSync } from 'node:fs';
import Ajv from 'ajv';
import request from 'supertest';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createApp } from '../src/app.js';
import { openDatabase } from '../src/db/open.js';
import type { components } from '../src/types/api.js';

const spec = parse(readFileSync('openapi.yaml', 'utf8'));
const ajv = new Ajv({ strict: false, validateFormats: false }).addSchema(spec, 'openapi.yaml');
const app = createApp(openDatabase());
const sample: components['schemas']['NewTodo'] = { title: 'Contract', due: '2026-01-20T09:00:00Z' };
let id = 0;

beforeAll(async () => {
  id = (await request(app).post('/api/todos').send(sample)).body.id;
});

function fits(schema: keyof components['schemas'], body: unknown): void {
  ajv.validate(`openapi.yaml#/components/schemas/${schema}`, body);
  expect(ajv.errorsText()).toBe('No errors');
}

describe('responses fit openapi.yaml', () => {
  it('GET /api/todos/{id}', async () => fits('Todo', (await request(app).get(`/api/todos/${id}`)).body));

  it('PATCH /api/todos/{id}', async () => {
    fits('Todo', (await request(app).patch(`/api/todos/${id}`).send({ done: true })).body);
  });

  it('an unknown id is an Error', async () => {
    fits('Error', (await request(app).get('/api/todos/999999').expect(404)).body);
  });
});
