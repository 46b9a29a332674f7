import { Button, Menu, Popover, TagsInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconArrowsDiff, IconCopy, IconDownload, IconTag, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from '@/components/navigation';
import { SelectionBar } from '@/components/SelectionBar';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { RunRow } from '@/api/types';
import { useConfirm } from '@/components/useConfirm';

interface Props {
  chosen: readonly RunRow[];
  knownTags: string[];
  mayWrite: boolean;
  onClear: () => void;
}

/** The most runs that the server compares. */
const MOST = 50;

/** Actions on the selected runs: compare, tag, repeat, delete. */
export function RunActions({ chosen, knownTags, mayWrite, onClear }: Props) {
  const [dialog, confirm] = useConfirm();
  const remove = useChange('runs', async (ids: number[]) => {
    for (const id of ids) await api.delete(`/runs/${id}`);
  });
  if (chosen.length === 0) return null;
  const withReport = chosen.filter((run) => run.outcome === 'finished');
  const comparable = withReport.length === chosen.length && chosen.length >= 2 && chosen.length <= MOST;
  const locked = chosen.find((run) => run.locked)?.locked ?? undefined;
  const askAndRemove = () =>
    confirm({
      title: chosen.length === 1 ? `Delete run ${chosen[0]?.id}?` : `Delete ${chosen.length} runs?`,
      text: 'Their reports and recorded events are deleted too. This cannot be undone.',
      action: 'Delete',
      onConfirm: () =>
        remove.mutate(
          chosen.map((run) => run.id),
          {
            onSuccess: onClear,
            onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
          },
        ),
    });
  return (
    <SelectionBar what={`${chosen.length}`} testId="selection-bar" onClear={onClear}>
      {dialog}
      <Button
        size="xs"
        leftSection={<IconArrowsDiff size={15} />}
        component={Link}
        to={`/compare?ids=${chosen
          .map((run) => run.id)
          .toSorted((a, b) => a - b)
          .join(',')}`}
        disabled={!comparable}
        onClick={(event: React.MouseEvent) => !comparable && event.preventDefault()}
        data-testid="compare-selected"
        title={comparable ? undefined : `Select 2 to ${MOST} finished runs`}
      >
        Compare
      </Button>
      <Menu position="top">
        <Menu.Target>
          <Button
            size="xs"
            variant="default"
            leftSection={<IconDownload size={15} />}
            data-testid="export-runs"
          >
            Export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {['csv', 'parquet'].map((kind) => (
            <Menu.Item
              key={kind}
              component="a"
              href={`/api/runs/export/${kind}?ids=${chosen.map(({ id }) => id).join(',')}`}
              download
              data-testid={`export-runs-${kind}`}
            >
              {kind === 'csv' ? 'CSV' : 'Parquet'}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {mayWrite && (
        <>
          <TagButton chosen={chosen} knownTags={knownTags} locked={locked} />
          {chosen.length === 1 && (
            <Button
              size="xs"
              variant="default"
              leftSection={<IconCopy size={15} />}
              component={Link}
              to={`/runs/new?from=${chosen[0]?.id}`}
              data-testid="repeat-run"
            >
              Repeat with changes
            </Button>
          )}
          <Button
            size="xs"
            variant="default"
            c="var(--loom-bad)"
            leftSection={<IconTrash size={15} />}
            onClick={askAndRemove}
            disabled={locked !== undefined}
            title={locked}
            loading={remove.isPending}
            data-testid="delete-runs"
          >
            Delete
          </Button>
        </>
      )}
    </SelectionBar>
  );
}

interface TagProps {
  chosen: readonly RunRow[];
  knownTags: string[];
  /** Why this person may not change one of the runs. */
  locked: string | undefined;
}

/** The tags that all selected runs share; adding or removing one changes every selected run. */
function TagButton({ chosen, knownTags, locked }: TagProps) {
  const [open, setOpen] = useState(false);
  const shared = chosen[0]?.tags.filter((tag) => chosen.every((run) => run.tags.includes(tag))) ?? [];
  const change = useChange('runs', async (next: string[]) => {
    const gone = shared.filter((tag) => !next.includes(tag));
    for (const run of chosen) {
      const tags = [...new Set([...run.tags.filter((tag) => !gone.includes(tag)), ...next])];
      await api.patch(`/runs/${run.id}`, { tags });
    }
  });
  return (
    <Popover opened={open} onChange={setOpen} position="top" withArrow trapFocus>
      <Popover.Target>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconTag size={15} />}
          disabled={locked !== undefined}
          title={locked}
          onClick={() => setOpen(!open)}
          data-testid="tag-runs"
        >
          Tags
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <TagsInput
          w={260}
          size="xs"
          label="Tags of all selected runs"
          placeholder="Type, then Enter"
          data={knownTags}
          value={shared}
          onChange={(tags) => change.mutate(tags)}
          disabled={change.isPending}
          data-testid="tags-input"
          comboboxProps={{ withinPortal: false }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}
