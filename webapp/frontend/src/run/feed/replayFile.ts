/** Writes a run into the built replay.html: one file that shows it without the server. */
import { api } from '@/api/client';
import { pastPath } from '@/api/queries';
import type { RunDetail, RunEvent } from '@/api/types';
import { pageOf } from '@/run/data/columns';
import { packed, type ReplayedRun, type StoredRun } from '@/run/data/replay';

export const MOST_BYTES = 2_000_000;
const PLACE = '<script id="run" type="application/json"></script>';

/** The text of the file. Throws an error for a run with too many events. */
export async function replayFile(run: RunDetail, words: Omit<ReplayedRun, 'spec'>): Promise<string> {
  const { cluster, model, workload } = run.spec;
  const stored: StoredRun = { run: { ...words, spec: { cluster, model, workload } }, pages: [], events: [] };
  let cursor = '0';
  for (let isLast = false; !isLast;) {
    const body = await api.bytes(pastPath(run.id, cursor));
    const page = pageOf(body);
    stored.pages.push(await packed(body));
    isLast = page.isLast || page.chunks.length === 0;
    cursor = page.chunks.at(-1)?.cursor ?? cursor;
  }
  for (let isLast = false; !isLast;) {
    const page = await api.read<{ cursor: string; events: RunEvent[] }>(
      `/runs/${run.id}/events?since=${cursor}`,
    );
    stored.events.push(...page.events);
    isLast = page.events.length === 0 || page.cursor === cursor;
    cursor = page.cursor;
  }
  const template = new TextDecoder().decode(
    await (await fetch(`${import.meta.env.BASE_URL}replay.html`)).arrayBuffer(),
  );
  return filled(template, stored);
}

export function filled(template: string, stored: object): string {
  if (!template.includes(PLACE))
    throw new Error('The server has no page for replays: build the front end again.');
  const json = JSON.stringify(stored).replaceAll('<', String.raw`\u003c`);
  const html = template.replace(PLACE, () => PLACE.replace('></', () => `>${json}</`));
  if (html.length > MOST_BYTES)
    throw new Error(
      `The replay would have ${(html.length / 1e6).toFixed(1)} MB, and ${MOST_BYTES / 1e6} MB is the limit: replay a run with fewer tokens or devices.`,
    );
  return html;
}
