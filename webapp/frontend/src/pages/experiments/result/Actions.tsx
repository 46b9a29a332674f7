import { ActionIcon, Button, Menu, Select } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import {
  IconChevronDown,
  IconDots,
  IconDownload,
  IconPencil,
  IconPlayerPause,
  IconPlayerPlay,
  IconTrash,
  IconX,
} from '@tabler/icons-react';
import { Link, useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useCatalogue, useChange, useMayWrite } from '@/api/queries';
import { exportLink } from '@/experiment/data/queries';
import { useState } from 'react';
import { useConfirm } from '@/components/useConfirm';
import type { ExperimentState, FigureAnswer, StoredExperiment } from '@/experiment/data/answers';

interface Props {
  stored: StoredExperiment;
  state: ExperimentState;
  mayChange: boolean;
  figures: readonly FigureAnswer[];
}

type Action = 'predict' | 'pause' | 'resume' | 'cancel';

/** Starting, pausing, cancelling, exporting and deleting an experiment. */
export function Actions({ stored, state, mayChange, figures }: Props) {
  const navigate = useNavigate();
  const [dialog, confirm] = useConfirm();
  const act = useChange('experiments', (action: Action) => api.post(`/experiments/${stored.id}/${action}`));
  const remove = useChange('experiments', () => api.delete(`/experiments/${stored.id}`));
  const fail = (error: Error) => notifications.show({ color: 'red', message: sentence(error) });
  const go = (action: Action) => act.mutate(action, { onError: fail });
  const current = stored.started_version === stored.version;
  return (
    <>
      {dialog}
      {mayChange && state === 'running' && (
        <Button
          variant="default"
          leftSection={<IconPlayerPause size={16} />}
          disabled={act.isPending}
          onClick={() => go('pause')}
          data-testid="pause"
        >
          Pause
        </Button>
      )}
      {mayChange && state === 'paused' && (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          disabled={act.isPending}
          onClick={() => go('resume')}
          data-testid="resume"
        >
          Resume
        </Button>
      )}
      {mayChange && (state === 'running' || state === 'paused') && (
        <Button
          variant="default"
          leftSection={<IconX size={16} />}
          disabled={act.isPending}
          onClick={() => go('cancel')}
          data-testid="cancel"
        >
          Cancel
        </Button>
      )}
      {mayChange && state !== 'running' && state !== 'paused' && (!current || state !== 'finished') && (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          disabled={act.isPending}
          onClick={() => go('predict')}
          data-testid="predict"
        >
          Predict
        </Button>
      )}
      {mayChange && (
        <Button
          variant="default"
          leftSection={<IconPencil size={16} />}
          component={Link}
          to={`/experiments/new?from=${stored.id}`}
          data-testid="edit-experiment"
        >
          Edit
        </Button>
      )}
      <ExportMenu stored={stored} figures={figures} />
      {mayChange && (
        <Menu position="bottom-end" width={180}>
          <Menu.Target>
            <ActionIcon variant="default" size={36} aria-label="More" data-testid="experiment-menu">
              <IconDots size={17} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item
              color="red"
              leftSection={<IconTrash size={15} />}
              data-testid="delete-experiment"
              onClick={() =>
                confirm({
                  title: `Delete ${stored.title || stored.name}?`,
                  text: 'Its runs, and results that other experiments share, stay. The experiment cannot be restored.',
                  action: 'Delete',
                  onConfirm: () =>
                    remove.mutate(undefined, { onError: fail, onSuccess: () => navigate('/experiments') }),
                })
              }
            >
              Delete
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
    </>
  );
}

const SIZES = [
  { value: '', label: 'by the number of panels' },
  { value: 'ieee-1', label: 'IEEE, one column (3.5 in)' },
  { value: 'ieee-2', label: 'IEEE, two columns (7.16 in)' },
  { value: 'acm-1', label: 'ACM, one column (3.33 in)' },
  { value: 'acm-2', label: 'ACM, two columns (7 in)' },
];

const DATA = [
  { format: 'csv', label: 'All points as CSV' },
  { format: 'json', label: 'All points as JSON' },
  { format: 'parquet', label: 'All points as Parquet' },
  { format: 'tex', label: 'Tables as LaTeX' },
  { format: 'html', label: 'Report as one HTML file' },
  { format: 'toml', label: 'Experiment file (TOML)' },
  { format: 'zip', label: 'Study: all of it, to repeat elsewhere' },
];

/** The installed methods of others that an experiment names. */
function useOthersMethods({ experiment }: StoredExperiment): string[] {
  const mayWrite = useMayWrite();
  const others = useCatalogue().data?.strategies.filter((row) => row.origin) ?? [];
  const text = mayWrite && experiment ? JSON.stringify([experiment.base, experiment.factors]) : '';
  return others.filter((row) => text.includes(`"${row.name}"`)).map((row) => row.title);
}

function ExportMenu({ stored, figures }: { stored: StoredExperiment; figures: readonly FigureAnswer[] }) {
  const { id } = stored;
  const [size, setSize] = useState('');
  const others = useOthersMethods(stored);
  return (
    <Menu position="bottom-end" width={280}>
      <Menu.Target>
        <Button
          variant="default"
          leftSection={<IconDownload size={16} />}
          rightSection={<IconChevronDown size={14} />}
          data-testid="export"
        >
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {DATA.map(({ format, label }) => (
          <Menu.Item
            key={format}
            component="a"
            href={exportLink(id, format)}
            download
            data-testid={`export-${format}`}
          >
            {label}
          </Menu.Item>
        ))}
        {others.length > 0 && (
          <Menu.Item
            component="a"
            href={exportLink(id, 'zip', { sources: 'true' })}
            download
            data-testid="export-sources"
          >
            Study with the source of {others.join(', ')}
          </Menu.Item>
        )}
        {figures.length > 0 && (
          <>
            <Menu.Divider />
            <Select
              size="xs"
              px="sm"
              py={6}
              label="Size of figures"
              value={size}
              allowDeselect={false}
              data={SIZES}
              comboboxProps={{ withinPortal: false }}
              onChange={(next) => setSize(next ?? '')}
              data-testid="export-size"
            />
          </>
        )}
        {figures.flatMap(({ name, title }) =>
          ['svg', 'pdf', 'csv'].map((format) => (
            <Menu.Item
              key={`${name}.${format}`}
              component="a"
              href={exportLink(id, format, { figure: name, size })}
              download
              data-testid={`export-${name}-${format}`}
            >
              {title || name} as {format.toUpperCase()}
            </Menu.Item>
          )),
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
