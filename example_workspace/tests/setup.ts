import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Workers run in parallel, and SQLite allows one writer per file: one file per worker.
const file = join(tmpdir(), `todos-test-${process.env.VITEST_POOL_ID ?? '0'}.db`);
for (const suffix of ['', '-journal']) {
  rmSync(file + suffix, { force: true });
}
process.env.TODO_DB = file;
