/** A trace of requests as CSV: the columns at_s, prompt_tokens and new_tokens, in any order. */
import type { Workload } from '@/api/types';

type Trace = NonNullable<Workload['trace']>;

const COLUMNS = ['at_s', 'prompt_tokens', 'new_tokens'] as const;

/** The lines in the order of time, or a sentence that says what is wrong with the text. */
export function parseTrace(text: string): Trace | string {
  const [head = '', ...lines] = text.split(/\r?\n/).filter((line) => line.trim());
  const names = head.split(',').map((name) => name.trim());
  const places = COLUMNS.map((name) => names.indexOf(name));
  if (places.includes(-1) || names.length !== COLUMNS.length)
    return `The columns are ${names.join(', ')}, expected ${COLUMNS.join(', ')}.`;
  const trace: Trace = [];
  for (const [number, line] of lines.entries()) {
    const cells = line.split(',').map((cell) => (cell.trim() ? Number(cell) : NaN));
    const [at_s, prompt_tokens, new_tokens] = places.map((place) => cells[place] ?? NaN);
    const isSize = (value: number | undefined) => Number.isInteger(value) && Number(value) > 0;
    if (!Number.isFinite(at_s) || Number(at_s) < 0 || !isSize(prompt_tokens) || !isSize(new_tokens))
      return `Line ${number + 2}: expected a time in seconds and two numbers of tokens, got ${line}.`;
    trace.push({ at_s: Number(at_s), prompt_tokens: Number(prompt_tokens), new_tokens: Number(new_tokens) });
  }
  if (trace.length === 0) return 'The file has no line below its columns.';
  return trace.toSorted((one, other) => one.at_s - other.at_s);
}
