import { describe, expect, it } from 'vitest';
import { complaint, firstFiles, MOST_BYTES } from './firstPage';

describe('the first page', () => {
  it('loads the entry with all that it imports at once, and nothing that comes later', () => {
    const manifest = {
      'index.html': {
        file: 'index.js',
        isEntry: true,
        imports: ['_shared.js', '_other.js'],
        dynamicImports: ['src/Page.tsx'],
        css: ['index.css'],
      },
      '_shared.js': { file: 'shared.js', css: ['shared.css'], imports: ['_other.js'] },
      '_other.js': { file: 'other.js', imports: ['_shared.js'] },
      'src/Page.tsx': { file: 'page.js', isDynamicEntry: true, imports: ['_shared.js'], css: ['page.css'] },
    };
    expect(firstFiles(manifest).toSorted()).toEqual([
      'index.css',
      'index.js',
      'other.js',
      'shared.css',
      'shared.js',
    ]);
  });

  it('may be as large as allowed, and names its largest files if it is larger', () => {
    expect(complaint(new Map([['a.js', MOST_BYTES]]))).toBe('');
    const said = complaint(
      new Map([
        ['a.css', 1],
        ['b.js', MOST_BYTES],
      ]),
    );
    expect(said).toContain('loads 150.0 kB');
    expect(said).toContain('b.js 150.0 kB, a.css 0.0 kB');
  });
});
