/** The past of a run, read as columns in a few requests. */
import { api } from '@/api/client';
import { Columns, framesOf, inflated } from '@/run/data/columns';

/** The chunks of events after batch `since` that there are now, in order. */
export async function* pastOf(id: number, since: string, signal?: AbortSignal): AsyncGenerator<Columns> {
  let cursor = since;
  for (;;) {
    const frames = framesOf(await api.bytes(`/runs/${id}/past?since=${cursor}`, signal));
    const chunks = frames.filter((frame) => frame.length > 0);
    for (const chunk of await Promise.all(chunks.map(inflated))) {
      const columns = new Columns(chunk);
      yield columns;
      cursor = columns.cursor;
    }
    if (chunks.length < frames.length) return;
  }
}
