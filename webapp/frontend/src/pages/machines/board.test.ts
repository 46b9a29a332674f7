import { expect, test } from 'vitest';
import type { Board } from '@/api/types';
import { boardState, boardStateText, isLoopback, joinLine, nextName, warmthText } from './board';

const NOW = Date.parse('2026-01-02T12:00:00Z');

const board = (fields: Partial<Board>): Board =>
  ({
    connected: false,
    seen_at: null,
    valid_until: '2026-01-03T12:00:00Z',
    hello: null,
    beat: null,
    device: null,
    ...fields,
  }) as Board;

const beat = (fields: Partial<NonNullable<Board['beat']>>) => ({ doing: '', ...fields }) as Board['beat'];

test('a board is expected, connected, measured, away, and at last its token lapses', () => {
  expect(boardState(board({}), NOW)).toBe('expected');
  expect(boardState(board({ connected: true }), NOW)).toBe('connected');
  const measuring = board({ connected: true, beat: beat({ doing: 'calibrating: round 1' }) });
  expect(boardState(measuring, NOW)).toBe('measuring');
  expect(boardStateText(measuring, NOW)).toBe('calibrating: round 1');
  const away = board({ seen_at: '2026-01-02T11:57:00Z' });
  expect(boardStateText(away, NOW)).toBe('last seen 3 minutes ago');
  expect(boardState(away, Date.parse('2026-01-04T00:00:00Z'))).toBe('lapsed');
});

test('what Linux does not show is left out', () => {
  expect(warmthText(board({ beat: beat({ temperature_celsius: 47.2, frequency_hz: 1.5e9 }) }))).toBe(
    '47.2 °C, 1.5 GHz',
  );
  expect(warmthText(board({ beat: beat({ temperature_celsius: null, frequency_hz: 6e8 }) }))).toBe('600 MHz');
  expect(warmthText(board({}))).toBe('–');
});

test('a new board gets the first free number, and its line the address of this page', () => {
  expect(nextName([{ name: 'board-1' }, { name: 'desk' }, { name: 'board-3' }])).toBe('board-2');
  expect(joinLine('https://loom.example', 'node_x')).toBe(
    'edgeloom node --join https://loom.example --token node_x',
  );
});

test('a page that only this machine can open is told from others', () => {
  expect(['localhost', '127.0.0.1', '[::1]'].map(isLoopback)).toEqual([true, true, true]);
  expect(['10.0.0.5', 'lab.local', 'localhosts.example'].map(isLoopback)).toEqual([false, false, false]);
});
