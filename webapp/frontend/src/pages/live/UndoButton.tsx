import { Button } from '@mantine/core';
import { IconArrowBackUp } from '@tabler/icons-react';
import { useState } from 'react';
import type { ClusterSpec, Mark } from '@/api/types';
import { describeMark } from '@/run/data/runData';
import { sendChange } from '@/run/feed/commands';
import { newestToUndo, undoOf, type Undone } from '@/run/scenario/undo';

interface Props {
  runId: number;
  cluster: ClusterSpec;
  /** The marks of all changes so far. */
  marks: readonly Mark[];
}

/** Takes back the newest live change, then the one before it; nothing while there is none. */
export function UndoButton({ runId, cluster, marks }: Props) {
  const [undone, setUndone] = useState<readonly Undone[]>([]);
  const at = newestToUndo(marks, cluster, undone);
  if (at < 0) return null;
  const undo = async () => {
    const commands = undoOf(marks, at, cluster);
    setUndone((before) => [...before, { at, marks: marks.length, commands: commands.length }]);
    for (const command of commands) {
      if (await sendChange(runId, command)) continue;
      setUndone((before) => before.filter((one) => one.at !== at));
      return;
    }
  };
  return (
    <Button
      size="compact-xs"
      variant="light"
      leftSection={<IconArrowBackUp size={14} />}
      title={`Undo: ${describeMark(marks[at]!)}`}
      flex="none"
      data-testid="undo"
      onClick={() => void undo()}
    >
      Undo
    </Button>
  );
}
