/** Every class that a component reads from a CSS module is defined there. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';

const SRC = import.meta.dirname;
const FILES = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name));

const defined = new Map(
  FILES.filter((file) => file.endsWith('.module.css')).map((file) => [file, classesOf(file)] as const),
);

function classesOf(file: string): Set<string> {
  return new Set([...readFileSync(file, 'utf8').matchAll(/\.([a-zA-Z][\w-]*)/g)].map(([, name]) => name!));
}

/** [module, class] of every class that a component reads. */
function reads(file: string): [string, string][] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/import (\w+) from '([^']+\.module\.css)'/g)].flatMap(([, local, path]) => {
    const module = path!.startsWith('@/') ? join(SRC, path!.slice(2)) : join(dirname(file), path!);
    return [...text.matchAll(new RegExp(`\\b${local}\\.(\\w+)`, 'g'))].map(([, name]): [string, string] => [
      module,
      name!,
    ]);
  });
}

it('no component reads a CSS class that its module does not define', () => {
  const read = FILES.filter((file) => file.endsWith('.tsx')).flatMap(reads);
  const undefinedClasses = read.filter(([module, name]) => !defined.get(module)?.has(name));
  expect(undefinedClasses.map(([module, name]) => `${relative(SRC, module)}: ${name}`)).toEqual([]);
});
