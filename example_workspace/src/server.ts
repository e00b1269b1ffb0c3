import { createApp } from './app.js';
import { openDatabase } from './db/open.js';

const port = Number(process.env.PORT ?? 3000);

const server = createApp(openDatabase()).listen(port, (): void => {
  console.log(`todo-api listens on http://localhost:${port}`);
});

process.on('SIGTERM', (): void => {
  server.close();
});
