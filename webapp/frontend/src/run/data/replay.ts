/** A run inside the page that replays it: its events as columns, compressed. */
import type { RunEvent, RunSpec } from '@/api/types';
import { pageOf } from './columns';
import { RunData } from './runData';

const SPANS = 1_500_000;

/** What the page shows besides the events. */
export interface ReplayedRun {
  title: string;
  about: string;
  /** Where the report is on the server. */
  address: string;
  spec: Pick<RunSpec, 'cluster' | 'model' | 'workload'>;
}

export interface StoredRun {
  run: ReplayedRun;
  /** Pages of columns, compressed, then as base64. */
  pages: string[];
  /** The events after them. */
  events: RunEvent[];
}

/** The run in the page that shows it. */
export async function replayed(text: string): Promise<{ run: ReplayedRun; data: RunData }> {
  const { run, pages, events } = JSON.parse(text) as StoredRun;
  const data = new RunData(run.spec.cluster, run.spec.model, SPANS);
  data.service.serves = run.spec.workload.pattern === 'serve';
  for (const page of pages) for (const part of pageOf(await unpacked(page)).chunks) data.apply(part);
  data.apply(events);
  return { run, data };
}

export async function packed(bytes: ArrayBuffer): Promise<string> {
  const small = await through(bytes, new CompressionStream('gzip'));
  let text = '';
  for (const byte of new Uint8Array(small)) text += String.fromCodePoint(byte);
  return btoa(text);
}

export async function unpacked(text: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.codePointAt(0)!);
  return through(bytes.buffer, new DecompressionStream('gzip'));
}

const through = (bytes: ArrayBuffer, stream: CompressionStream | DecompressionStream): Promise<ArrayBuffer> =>
  new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();
