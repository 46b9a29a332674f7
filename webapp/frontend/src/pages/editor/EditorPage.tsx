import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useParams } from '@/components/navigation';
import { api, isMissing, sentence } from '@/api/client';
import { useClusters } from '@/api/queries';
import type { ClusterRow } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { NotFound } from '@/components/NotFound';
import { emptyDrawing, freeName } from '@/cluster/drawing';
import { Editor } from './Editor';
import { editor } from './editorStore';

/** The pages /clusters/new and /clusters/:id: load the cluster into the editor's store once. */
export function EditorPage() {
  const { id: text } = useParams();
  const id = text === undefined ? 0 : Number(text);
  const [opened, setOpened] = useState<number | null>(null);
  const stored = useQuery({
    queryKey: ['clusters', id],
    queryFn: ({ signal }) => api.get<ClusterRow>(`/clusters/${id}`, signal),
    enabled: id > 0,
    staleTime: 0,
  });
  const others = useClusters().data;

  useEffect(() => {
    if (opened === id) return;
    if (id > 0 && editor().stored.id === id && opened === 0) {
      setOpened(id); // a new cluster was saved: the editor already has it
    } else if (id > 0 && stored.data && !stored.isFetching) {
      const { version, spec, layout } = stored.data;
      editor().open({ id, version, drawing: { spec, layout } });
      setOpened(id);
    } else if (id === 0 && others) {
      editor().open({
        id: 0,
        version: 0,
        drawing: emptyDrawing(
          freeName(
            others.map((row) => row.name),
            'cluster',
          ),
        ),
      });
      setOpened(0);
    }
  }, [id, opened, stored.data, stored.isFetching, others]);

  if (isMissing(stored.error)) return <NotFound />;
  if (stored.isError)
    return (
      <Center p="xl">
        <ErrorPanel message={sentence(stored.error)} onRetry={() => stored.refetch()} />
      </Center>
    );
  if (opened !== id)
    return (
      <Center mih="60vh">
        <Loader type="dots" />
      </Center>
    );
  return <Editor onReload={() => stored.refetch().then(() => setOpened(null))} />;
}
