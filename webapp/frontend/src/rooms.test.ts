/** The rooms of src/ and their one-way arrows, as rooms.json lists them, against the imports of every file. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import listed from './rooms.json';

const SRC = import.meta.dirname;
const ROOMS = listed.rooms;

/** Every source file, relative to src/, with the files of src/ that it imports. */
const imports = new Map(
  readdirSync(SRC, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(SRC, join(entry.parentPath, entry.name)))
    .map((file) => [file, importsOf(file)] as const),
);

function importsOf(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(SRC, file), 'utf8'));
  return importedFiles.flatMap(({ fileName }) => {
    if (fileName.startsWith('@/')) return [fileName.slice(2)];
    return fileName.startsWith('.') ? [normalize(join(dirname(file), fileName))] : [];
  });
}

/** The longest room name that the path starts with; '' for files of src/ itself; undefined if there is none. */
function roomOf(path: string): string | undefined {
  const names = ROOMS.map((room) => room.name).filter((name) =>
    name === '' ? !path.includes('/') : path.startsWith(`${name}/`) || path === name,
  );
  return names.toSorted((a, b) => b.length - a.length)[0];
}

/** Arrows between different rooms that some import makes: "from → to", with one file as a witness. */
function arrows(): Map<string, string> {
  const found = new Map<string, string>();
  for (const [file, targets] of imports) {
    for (const target of targets) {
      const [from, to] = [roomOf(file), roomOf(target)];
      if (from !== to) found.set(`${from} → ${to}`, `${file} imports ${target}`);
    }
  }
  return found;
}

describe('the rooms of src/', () => {
  it('hold every file', () => {
    expect([...imports.keys()].filter((file) => roomOf(file) === undefined)).toEqual([]);
  });

  it('import only rooms that stand above them in the list, so there is no circle', () => {
    const wrong = ROOMS.flatMap((room, place) =>
      room.imports.filter((name) => !ROOMS.slice(0, place).some((other) => other.name === name)),
    );
    expect(wrong).toEqual([]);
  });

  it('have exactly the arrows that the list allows', () => {
    const allowed = new Set(ROOMS.flatMap((room) => room.imports.map((to) => `${room.name} → ${to}`)));
    const found = arrows();
    expect([...found].filter(([arrow]) => !allowed.has(arrow)).map(([, witness]) => witness)).toEqual([]);
    expect([...allowed].filter((arrow) => !found.has(arrow))).toEqual([]);
  });
});
