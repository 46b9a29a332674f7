import react from '@vitejs/plugin-react';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vitest/config';
import { complaint, firstFiles } from './firstPage.ts';

const backend = process.env.EDGELOOM_BACKEND ?? 'http://127.0.0.1:8000';

const BASE = '/static/app/';

/**
 * Writes `.br` and `.gz` beside every built text file, which the server sends to browsers that take them; refuses a
 * first page that is too large.
 */
function compressed(): Plugin {
  let folder = '';
  return {
    name: 'compressed',
    apply: 'build',
    configResolved: (config) => {
      folder = join(config.root, config.build.outDir);
    },
    closeBundle: () => {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(js|css|svg)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const content = readFileSync(path);
        if (content.length < 1024) continue;
        writeFileSync(`${path}.br`, brotliCompressSync(content));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
      const page = readFileSync(join(folder, 'index.html'), 'utf8');
      const sizes = firstFiles(page, BASE).map((name): [string, number] => [
        name,
        brotliCompressSync(readFileSync(join(folder, name))).length,
      ]);
      const wrong = complaint(new Map(sizes));
      if (wrong) throw new Error(wrong);
    },
  };
}

// The built files are served by the web application below its static prefix; index.html by a view.
export default defineConfig(({ command }) => ({
  base: command === 'build' ? BASE : '/',
  plugins: [react(), compressed()],
  resolve: { alias: { '@': new URL('./src', import.meta.url).pathname } },
  build: {
    outDir: 'dist',
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      input: ['index.html', 'docs.html'],
      output: {
        codeSplitting: {
          groups: [
            // React stays in the caches of browsers when EdgeLoom changes.
            { name: 'react', test: /node_modules\/(react|react-dom|scheduler)\//, priority: 2 },
            // One file of all that the first page needs: many small ones take longer, and compress worse.
            { name: 'first', tags: ['$initial'], test: /\.(tsx?|m?js)$/, priority: 1 },
          ],
        },
      },
    },
  },
  server: {
    host: '127.0.0.1',
    // The Host header stays the browser's, or the server would see a forged origin.
    proxy: {
      '/api': { target: backend, changeOrigin: false },
      '/ws': { target: backend, ws: true, changeOrigin: false },
    },
  },
  test: {
    environment: 'node',
    include: ['*.test.ts', 'src/**/*.test.{ts,tsx}'],
    // Tests of all files share their modules, which take far longer to load than the tests to run.
    isolate: false,
    unstubGlobals: true,
    restoreMocks: true,
    // Only a test that hangs takes so long: on a busy machine one may wait for a processor.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
}));
