/** `mantineStyles.ts` has the styles of every component of Mantine that is used, in the order of Mantine's own file. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '..');
const CORE = join(SRC, '..', 'node_modules', '@mantine', 'core');
const BASE = ['baseline', 'default-css-variables', 'global'];

const listed = [
  ...readFileSync(join(import.meta.dirname, 'mantineStyles.ts'), 'utf8').matchAll(/styles\/([\w-]+)\.css/g),
].map(([, name]) => name!);

/** Names that the code imports from Mantine. */
function imported(): Set<string> {
  const files = readdirSync(SRC, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && /\.tsx?$/.test(entry.name),
  );
  const texts = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
  const names = texts.flatMap((text) =>
    [...text.matchAll(/import \{([^}]*)\} from '@mantine\/core'/g)].flatMap(([, list]) => list!.split(',')),
  );
  return new Set(names.map((name) => name.trim().split(' as ')[0]!).filter(Boolean));
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

  it('are those of the components that are used', () => {
    expect(listed.filter((name) => !BASE.includes(name)).toSorted()).toEqual(
      [...needed(imported())].toSorted(),
    );
  });

  it('stand in the order of the whole file, as later ones change earlier ones', () => {
    expect(listed.map(place).includes(-1)).toBe(false);
    expect(listed).toEqual(listed.toSorted((one, other) => place(one) - place(other)));
  });
});
