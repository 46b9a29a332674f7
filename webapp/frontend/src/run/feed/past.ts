/** The past of a run, read as columns in a few requests. */
import { api } from '@/api/client';
import { pastPath } from '@/api/queries';
import { pageOf, type Columns } from '@/run/data/columns';

/** The chunks of events after batch `since` that there are now, in order. */
export async function* pastOf(id: number, since: string, signal?: AbortSignal): AsyncGenerator<Columns> {
  for (let cursor = since; ;) {
    const { chunks, isLast } = pageOf(await api.bytes(pastPath(id, cursor), signal));
    yield* chunks;
    const newest = chunks.at(-1);
    if (isLast || !newest) return;
    cursor = newest.cursor;
  }
}
