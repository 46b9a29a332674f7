/** The numbers of a run that lists show, sort, limit and average. */
import type { RunRow } from '@/api/types';
import { bytes, joules, percent, perToken, seconds, three } from '@/format/units';

export interface Figure {
  key: string;
  title: string;
  about: string;
  /** Shown by default. */
  usual: boolean;
  text: (value: number) => string;
  of: (run: RunRow) => number | null;
}

const stored = (key: string) => (run: RunRow) => run.figures[key] ?? null;

export const FIGURES: readonly Figure[] = [
  {
    key: 'ttft_s',
    title: 'TTFT',
    about: 'time to first token, mean',
    usual: true,
    text: seconds,
    of: (run) => run.ttft_s,
  },
  {
    key: 'tpot_s',
    title: 'TPOT',
    about: 'time per output token, mean',
    usual: true,
    text: perToken,
    of: (run) => run.tpot_s,
  },
  {
    key: 'latency_s',
    title: 'End to end',
    about: 'from the first request to the last token',
    usual: true,
    text: seconds,
    of: (run) => run.latency_s,
  },
  {
    key: 'tokens_per_s',
    title: 'Tokens/s',
    about: 'generated tokens per virtual second',
    usual: false,
    text: three,
    of: (run) => run.tokens_per_s,
  },
  ...(
    [
      ['token_p50_s', 'Token p50', 'time between two tokens, median', seconds, false],
      ['token_p95_s', 'Token p95', 'time between two tokens, 95 %', seconds, false],
      ['token_p99_s', 'Token p99', 'time between two tokens, 99 %', seconds, false],
      ['ttft_p95_s', 'TTFT p95', 'time to first token under load, 95 %', seconds, false],
      ['queue_p95_s', 'Queue p95', 'time in the queue, 95 %', seconds, false],
      ['answer_p95_s', 'Answer p95', 'time to the whole answer under load, 95 %', seconds, false],
      [
        'goodput_per_s',
        'Goodput',
        'requests within the objectives per second',
        (value: number) => `${three(value)} /s`,
        false,
      ],
      ['link_bytes', 'On links', 'bytes on all links', bytes, true],
      ['payload_bytes', 'Payload', 'bytes on all links without frames', bytes, false],
      ['link_frac', 'Links’ share', 'of the critical path', percent, false],
      ['peak_memory_bytes', 'Memory', 'peak of the device that needs most', bytes, true],
      ['energy_j', 'Energy', 'of devices and links', joules, false],
      ['predicted_latency_s', 'Predicted', 'end-to-end latency, with all changes known', seconds, false],
      ['dilation', 'D', 'real seconds per virtual second', three, false],
    ] as const
  ).map(([key, title, about, text, usual]) => ({ key, title, about, usual, text, of: stored(key) })),
];

export const figureOf = (key: string): Figure | undefined => FIGURES.find((figure) => figure.key === key);
