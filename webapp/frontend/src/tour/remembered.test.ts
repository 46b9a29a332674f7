import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { hasSeenTour, rememberTour } from './remembered';
import { STEPS } from './steps';

describe('the tour', () => {
  it('is remembered for each person', () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    };
    rememberTour('ann', storage);
    expect([hasSeenTour('ann', storage), hasSeenTour('bob', storage)]).toEqual([true, false]);
  });

  it('is not offered again and again where nothing can be stored', () => {
    const broken = {
      getItem: () => {
        throw new Error('storage is off');
      },
    };
    expect(hasSeenTour('ann', broken)).toBe(true);
  });

  it('has five steps, and each points at something of the header', () => {
    const shell = join(import.meta.dirname, '..', 'shell');
    const text = readdirSync(shell)
      .filter((name) => name.endsWith('.tsx'))
      .map((name) => readFileSync(join(shell, name), 'utf8'))
      .join('\n');
    expect(STEPS).toHaveLength(5);
    for (const { target } of STEPS)
      expect(text).toContain(target.startsWith('nav-') ? `id: '${target.slice(4)}'` : `"${target}"`);
  });
});
