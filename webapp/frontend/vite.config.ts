import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const backend = process.env.EDGELOOM_BACKEND ?? 'http://127.0.0.1:8000';

// The built files are served by the web application below its static prefix; index.html by a view.
export default defineConfig(({ command }) => ({
  base: command === 'build' ? '/static/app/' : '/',
  plugins: [react()],
  resolve: { alias: { '@': new URL('./src', import.meta.url).pathname } },
  build: { outDir: 'dist', chunkSizeWarningLimit: 900 },
  server: {
    host: '127.0.0.1',
    // The Host header stays the browser's, or the server would see a forged origin.
    proxy: {
      '/api': { target: backend, changeOrigin: false },
      '/ws': { target: backend, ws: true, changeOrigin: false },
    },
  },
  test: { environment: 'node', include: ['src/**/*.test.{ts,tsx}'] },
}));
