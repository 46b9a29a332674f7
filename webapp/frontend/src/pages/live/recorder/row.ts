import type { Change } from '@/api/types';

/** A change with a key that stays while it is edited and moved. */
export interface Row {
  key: number;
  change: Change;
}
