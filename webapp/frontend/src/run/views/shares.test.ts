import { describe, expect, it } from 'vitest';
import type { Mark } from '@/api/types';
import { backupsOf, servingOf } from './shares';

const mark = (name: string, facts: Mark['facts']): Mark => ({ time_s: 1, name, device: 'a', facts });

describe('servingOf', () => {
  it('replaces the columns of a failed secondary by the backups that were promoted', () => {
    const promoted = [
      mark('promoted', {
        lost: 1,
        backups: [
          [2, 4, 6],
          [3, 6, 8],
        ],
        epoch: 1,
      }),
    ];
    expect(
      servingOf(
        [
          [0, 0, 4],
          [1, 4, 8],
        ],
        promoted,
      ).map((piece) => piece.rank),
    ).toEqual([0, 2, 3]);
  });
});

describe('backupsOf', () => {
  it('lists the copies of all secondaries by column', () => {
    expect(backupsOf({ 1: [[2, 6, 8]], 2: [[1, 2, 4]] })).toEqual([
      { rank: 1, start: 2, stop: 4 },
      { rank: 2, start: 6, stop: 8 },
    ]);
  });
});
