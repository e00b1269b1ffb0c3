/** A due date as the reader's calendar shows it; the API itself speaks UTC. */
export function formatDue(due: string, locale?: string): string {
  return new Date(due).toLocaleDateString(locale, { dateStyle: 'medium' });
}

export function isOverdue(todo: { done: boolean; due: string | null }, now = new Date()): boolean {
  return !todo.done && todo.due !== null && new Date(todo.due) < now;
}
