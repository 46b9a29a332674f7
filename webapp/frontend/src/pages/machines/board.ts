import type { Board } from '@/api/types';
import { ago, flopRate, human, three } from '@/format/units';

export type BoardState = 'connected' | 'measuring' | 'away' | 'expected' | 'lapsed';

/** What is known of a board, in one word; `now` in milliseconds. */
export function boardState(board: Board, now: number): BoardState {
  if (board.connected) return board.beat?.doing ? 'measuring' : 'connected';
  if (Date.parse(board.valid_until) < now) return 'lapsed';
  return board.seen_at ? 'away' : 'expected';
}

/** What stands below that word, if anything. */
export function boardStateText(board: Board, now: number): string {
  const until = new Date(board.valid_until).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
  switch (boardState(board, now)) {
    case 'connected':
      return '';
    case 'measuring':
      return board.beat?.doing ?? '';
    case 'away':
      return `last seen ${ago(board.seen_at ?? '', now)}`;
    case 'expected':
      return `its token lapses on ${until}`;
    case 'lapsed':
      return 'revoke it, and add the board again';
  }
}

/** "47 °C, 1.5 GHz", or what of it the board's Linux shows. */
export function warmthText({ beat }: Board): string {
  const celsius = beat?.temperature_celsius;
  const hz = beat?.frequency_hz;
  const parts = [celsius != null && `${three(celsius)} °C`, hz != null && human(hz, 'Hz')];
  return parts.filter(Boolean).join(', ') || '–';
}

/** What a core reaches, as it was measured. */
export function ratesText({ device }: Board): string {
  return device ? `${flopRate(device.flop_per_s)}, ${human(device.memory_byte_per_s, 'B/s')}` : 'not yet';
}

/** The line to type on a board. */
export const joinLine = (origin: string, token: string): string =>
  `edgeloom node --join ${origin} --token ${token}`;

/** A name for the next board that no other one has. */
export function nextName(boards: readonly Pick<Board, 'name'>[]): string {
  const taken = new Set(boards.map(({ name }) => name));
  let number = 1;
  while (taken.has(`board-${number}`)) number += 1;
  return `board-${number}`;
}

/** Whether an address leads to the machine that opens it, so that no board can reach the server there. */
export const isLoopback = (host: string): boolean => /^(localhost$|127\.|\[::1\]$)/.test(host);
