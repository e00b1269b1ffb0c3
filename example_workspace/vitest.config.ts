import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    // Gives each worker its own database; see tests/setup.ts.
    setupFiles: ['tests/setup.ts'],
    testTimeout: 5_000,
  },
});
