import { describe, expect, it } from 'vitest';
import { complaint, firstFiles, MOST_BYTES } from './firstPage';

describe('the first page', () => {
  it('loads the scripts and styles that the built page names', () => {
    const html =
      '<link rel="icon" href="/static/app/favicon.svg"><link rel="modulepreload" href="/static/app/assets/react-1.js">' +
      '<script type="module" src="/static/app/assets/first-1.js"></script>' +
      '<link rel="stylesheet" href="/static/app/assets/first-1.css">';
    expect(firstFiles(html, '/static/app/')).toEqual([
      'assets/react-1.js',
      'assets/first-1.js',
      'assets/first-1.css',
    ]);
    expect(() => firstFiles('<p></p>', '/')).toThrow('names no script');
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
