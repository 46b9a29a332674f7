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
    proxy: { '/api': backend, '/ws': { target: backend, ws: true } },
  },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
}));
