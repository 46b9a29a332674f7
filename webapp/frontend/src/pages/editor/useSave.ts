import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { useNavigate } from '@/components/navigation';
import { ApiError, api, sentence } from '@/api/client';
import type { ClusterRow } from '@/api/types';
import { positionsOf } from '@/cluster/autoLayout';
import type { Drawing } from '@/cluster/drawing';
import { editor } from './editorStore';

/** Why the drawing could not be stored in its place: somebody else saved it, or it is not this person's. */
export interface Conflict {
  message: string;
  forbidden: boolean;
}

/** Saves the drawing; after a `conflict` it can be saved under another name. */
export function useSave() {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [conflict, setConflict] = useState<Conflict | null>(null);

  const finish = useCallback(
    async (row: ClusterRow, sent: Drawing) => {
      const isNew = editor().stored.id !== row.id;
      editor().saved({ id: row.id, version: row.version, drawing: sent });
      client.setQueryData(['clusters', row.id], row);
      notifications.show({ message: `Saved ${row.name}.` });
      if (isNew) await navigate(`/clusters/${row.id}`, { replace: true });
      await client.invalidateQueries({ queryKey: ['clusters'], exact: true });
    },
    [client, navigate],
  );

  const attempt = useCallback(
    async (send: (drawing: Drawing) => Promise<ClusterRow>) => {
      const { history } = editor();
      setBusy(true);
      setConflict(null);
      try {
        await finish(await send(withPositions(history.present)), history.present);
      } catch (error) {
        if (error instanceof ApiError && (error.status === 409 || error.status === 403))
          setConflict({ message: error.message, forbidden: error.status === 403 });
        else
          notifications.show({ color: 'red', title: 'Not saved', message: sentence(error), autoClose: 8000 });
      } finally {
        setBusy(false);
      }
    },
    [finish],
  );

  const save = useCallback(() => {
    const { id, version } = editor().stored;
    void attempt((drawing) =>
      id
        ? api.put<ClusterRow>(`/clusters/${id}`, { ...drawing, version })
        : api.post<ClusterRow>('/clusters', drawing),
    );
  }, [attempt]);

  /** Replaces the version that is stored now. */
  const overwrite = useCallback(() => {
    const { id } = editor().stored;
    void attempt(async (drawing) => {
      const { version } = await api.get<ClusterRow>(`/clusters/${id}`);
      return api.put<ClusterRow>(`/clusters/${id}`, { ...drawing, version });
    });
  }, [attempt]);

  /** Saves the drawing as a new cluster with another name. */
  const saveAs = useCallback(
    (name: string) => {
      editor().edit((old) => ({ ...old, spec: { ...old.spec, name } }));
      void attempt((drawing) => api.post<ClusterRow>('/clusters', drawing));
    },
    [attempt],
  );

  return { busy, conflict, save, overwrite, saveAs, dismiss: () => setConflict(null) };
}

/** Saves a position for every node, also for those placed automatically. */
function withPositions(drawing: Drawing): Drawing {
  return { ...drawing, layout: { ...drawing.layout, positions: positionsOf(drawing.spec, drawing.layout) } };
}
