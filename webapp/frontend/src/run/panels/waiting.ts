import type { RunRow } from '@/api/types';
import { duration } from '@/format/units';

/** What a queued run waits for, and for how long if that is known; '' of one that is not queued. */
export function waitText({
  status,
  queue_position,
  starts_in_s,
  detail,
}: Pick<RunRow, 'status' | 'queue_position' | 'starts_in_s' | 'detail'>): string {
  if (status !== 'queued' || queue_position === null) return '';
  const place = queue_position === 1 ? 'Next in the queue' : `Number ${queue_position} in the queue`;
  const start = starts_in_s === null || starts_in_s < 1 ? '' : `, likely in ${duration(starts_in_s)}`;
  return `${place}${start}. ${detail}`.trim();
}
