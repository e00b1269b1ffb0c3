import type { components } from '../../src/types/api.js';

export type Todo = components['schemas']['Todo'];

// Relative on purpose: in development the Vite proxy answers, in production Express does.
async function call<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(`/api${path}`, {
    headers: { 'content-type': 'application/json' },
    ...init,
  });
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}

export const listTodos = (): Promise<Todo[]> => call('/todos');

export const setDone = (id: number, done: boolean): Promise<Todo> =>
  call(`/todos/${id}`, { method: 'PATCH', body: JSON.stringify({ done }) });
