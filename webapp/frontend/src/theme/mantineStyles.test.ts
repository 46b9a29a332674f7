/**
 * `mantineStyles.ts` has the styles of the components of Mantine that the first page needs, `moreStyles.ts` those of
 * all others, both in the order of Mantine's own file.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '..');
const CORE = join(SRC, '..', 'node_modules', '@mantine', 'core');
const BASE = ['baseline', 'default-css-variables', 'global'];

const namesIn = (file: string) =>
  [...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/styles\/([\w-]+)\.css/g)].map(
    ([, name]) => name!,
  );
const first = namesIn('mantineStyles.ts');
const more = namesIn('moreStyles.ts');

const SOURCES = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /(?<!\.test)\.tsx?$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name));

/** The modules that are loaded with this one: all that it imports, but not what it loads later by `import()`. */
function loadedWith(file: string, found = new Set<string>()): Set<string> {
  found.add(file);
  const imports = readFileSync(file, 'utf8').matchAll(/(?:import|export) (?!type )[^;]*?from '([^']+)'/g);
  for (const [, path] of imports) {
    const base = path!.startsWith('@/') ? join(SRC, path!.slice(2)) : resolve(dirname(file), path!);
    const next = [`${base}.ts`, `${base}.tsx`].find((name) => SOURCES.includes(name));
    if (next && !found.has(next)) loadedWith(next, found);
  }
  return found;
}

/** Names that these files import from Mantine. */
function imported(files: Iterable<string>): Set<string> {
  const names = [...files].flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/import \{([^}]*)\} from ['"]@mantine\/core['"]/g)].flatMap(
      ([, list]) => list!.split(','),
    ),
  );
  return new Set(names.map((name) => name.trim().split(' as ')[0]!).filter(Boolean));
}

/** The modules of the other packages of Mantine that are used: what they import is needed too. */
function otherPackages(): string[] {
  const used = new Set(
    SOURCES.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/from '@mantine\/(?!core)([\w-]+)'/g)].map(([, name]) => name!),
    ),
  );
  return [...used].flatMap((name) =>
    readdirSync(join(CORE, '..', name, 'esm'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.mjs'))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
}

/** The modules of styles that these components import, themselves or through others. */
function needed(names: ReadonlySet<string>): Set<string> {
  const index = readFileSync(join(CORE, 'esm', 'index.mjs'), 'utf8');
  const files = new Map(
    [...index.matchAll(/(?:import|export) \{([^}]*)\} from "([^"]+)"/g)].flatMap(([, list, file]) =>
      list!.split(',').map((name): [string, string] => [name.trim().split(' as ').at(-1)!, file!]),
    ),
  );
  const seen = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file) || !existsSync(file)) return;
    seen.add(file);
    for (const [, next] of readFileSync(file, 'utf8').matchAll(/(?:from|import) ?"(\.[^"]+)"/g))
      visit(resolve(dirname(file), next!));
  };
  for (const name of names) if (files.has(name)) visit(resolve(CORE, 'esm', files.get(name)!));
  return new Set([...seen].flatMap((file) => /\/([\w-]+)\.module\.mjs$/.exec(file)?.[1] ?? []));
}

describe('the styles of Mantine', () => {
  const all = readFileSync(join(CORE, 'styles.css'), 'utf8');
  const place = (name: string) =>
    all.indexOf(
      readFileSync(join(CORE, 'styles', `${name}.css`), 'utf8')
        .trim()
        .slice(0, 120),
    );

  it('are at first those of the components that come with the first page', () => {
    expect(first.filter((name) => !BASE.includes(name)).toSorted()).toEqual(
      [...needed(imported(loadedWith(join(SRC, 'main.tsx'))))].toSorted(),
    );
  });

  it('are later those of the other components that are used', () => {
    const rest = [...needed(imported([...SOURCES, ...otherPackages()]))].filter(
      (name) => !first.includes(name),
    );
    expect(more.toSorted()).toEqual(rest.toSorted());
  });

  it('stand in the order of the whole file, as later ones change earlier ones', () => {
    for (const listed of [first, more]) {
      expect(listed.map(place).includes(-1)).toBe(false);
      expect(listed).toEqual(listed.toSorted((one, other) => place(one) - place(other)));
    }
  });
});
