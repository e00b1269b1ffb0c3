import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  server: {
    port: 5173,
    // The browser talks to one origin; Vite passes /api on to the API.
    proxy: { '/api': { target: 'http://localhost:3000', changeOrigin: true } },
  },
});
