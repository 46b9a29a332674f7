/** Builds replay.html: one file that shows a run without the server. Run after the build of the pages. */
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Puts the script and the styles into the page, which then needs no other file. */
function inOneFile(): Plugin {
  return {
    name: 'in-one-file',
    enforce: 'post',
    generateBundle: (_, bundle) => {
      const page = bundle['replay.html'];
      if (page?.type !== 'asset') throw new Error('replay.html: the build made no such page.');
      let html = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === 'chunk' ? file.code : String(file.source);
        const isScript = file.type === 'chunk';
        const tag = new RegExp(
          `<(script|link)[^>]*(src|href)="[^"]*${name.split('/').at(-1)!}"[^>]*>(</script>)?`,
        );
        if (!tag.test(html)) throw new Error(`replay.html: the page does not name ${name}.`);
        html = html.replace(tag, '');
        // A script without a module's wait runs before the root is there: it goes last.
        html = isScript
          ? html.replace(
              '</body>',
              () => `<script type="module">${text.replaceAll('</script', '<\\/script')}</script></body>`,
            )
          : html.replace('</head>', () => `<style>${text}</style></head>`);
        delete bundle[name];
      }
      page.source = html;
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [react(), inOneFile()],
  publicDir: false,
  resolve: { alias: { '@': new URL('./src', import.meta.url).pathname } },
  build: {
    outDir: 'dist',
    emptyOutDir: false,
    assetsInlineLimit: 1_000_000,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
    rolldownOptions: { input: 'replay.html', output: { codeSplitting: false } },
  },
});
