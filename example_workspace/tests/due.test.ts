import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { formatDue, isOverdue } from '../web/src/due.js';

beforeEach(() => vi.useFakeTimers().setSystemTime(new Date('2026-01-15T00:30:00Z')));
afterEach(() => vi.useRealTimers());

it('shows the date of the time zone it runs in, which is UTC in tests', () => {
  expect(formatDue('2026-01-15T00:30:00Z', 'en-US')).toBe('Jan 15, 2026');
});

it('is overdue once the moment has passed', () => {
  expect(isOverdue({ done: false, due: '2026-01-15T00:29:00Z' })).toBe(true);
  expect(isOverdue({ done: true, due: '2026-01-15T00:29:00Z' })).toBe(false);
});
