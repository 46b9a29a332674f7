import { notifications } from '@mantine/notifications';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { StoredExperiment } from '@/experiment/data/answers';
import { slug } from '@/experiment/data/design';
import type { FigureSpec, TableSpec } from '@/experiment/data/types';

type Kept = { figures: FigureSpec } | { tables: TableSpec };

/** Stores a figure or a table that a person has composed with the experiment, so that reports have it. */
export function useKeep({ id, experiment, version }: StoredExperiment) {
  const change = useChange('experiments', (kept: Kept) => {
    const [list, one] = Object.entries(kept)[0] as ['figures' | 'tables', FigureSpec | TableSpec];
    return api.put(`/experiments/${id}`, {
      experiment: { ...experiment, [list]: [...(experiment?.[list] ?? []), one] },
      version,
    });
  });
  const keep = (kept: Kept, onKept: () => void = () => undefined) =>
    change.mutate(kept, {
      onSuccess: onKept,
      onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
    });
  return [keep, change.isPending] as const;
}

/** A name in files after a title, which no other has: "time-to-first-token-2". */
export function nameAfter(title: string, others: readonly { name: string }[]): string {
  const taken = new Set(others.map(({ name }) => name));
  const base = slug(title) || 'kept';
  let [name, number] = [base, 2];
  while (taken.has(name)) name = `${base}-${number++}`;
  return name;
}
