import { Button, FileButton } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconFileImport } from '@tabler/icons-react';
import type { ComponentProps } from 'react';
import { api } from '@/api/client';
import { command } from '@/api/command';
import { useChange, useMayWrite } from '@/api/queries';
import type { CalibratedMachine } from '@/api/types';
import { flopRate, human } from '@/format/units';
import { AddedPanel, refused } from './AddedPanel';
import { machineName, readCalibration } from './profile';
import { useCalibratedMachines } from './queries';

const MACHINES: Omit<ComponentProps<typeof AddedPanel<CalibratedMachine>>['kind'], 'about'> = {
  title: 'Calibrated machines',
  testId: 'profiles',
  rowTestId: 'machine',
  nothing: 'No calibration has been imported yet.',
  path: '/machines',
  keys: ['machines', 'catalogue'],
  consequence: 'The editor offers it no longer. Clusters that use it keep its values.',
  columns: [
    { head: 'Device', cell: ({ name }) => name },
    { head: 'Processor', cell: ({ host }) => host },
    { head: 'Peak of a core', cell: ({ flop_per_s }) => flopRate(flop_per_s) },
    { head: 'Memory of a core', cell: ({ memory_byte_per_s }) => human(memory_byte_per_s, 'B/s') },
    { head: 'Measured', cell: ({ source }) => source },
    { head: 'Digest', cell: ({ digest }) => <code>{digest}</code> },
  ],
};

/** Machines that were calibrated elsewhere: the editor offers them as devices. */
export function Profiles() {
  const mayWrite = useMayWrite();
  const { data, error } = useCalibratedMachines();
  const about = `Devices for clusters, as ${command('calibrate --output FILE')} measured them elsewhere.`;
  return (
    <AddedPanel
      kind={{ ...MACHINES, about }}
      rows={data}
      error={error}
      extra={mayWrite && <ImportButton />}
    />
  );
}

function ImportButton() {
  const store = useChange(MACHINES.keys, async (file: File) =>
    api.post<CalibratedMachine>('/machines', {
      name: machineName(file.name),
      calibration: await readCalibration(file),
    }),
  );
  const take = (file: File | null) =>
    file &&
    store.mutate(file, {
      onSuccess: ({ name }) => notifications.show({ message: `${name} is among the devices of the editor.` }),
      onError: refused(file.name),
    });
  return (
    <FileButton accept=".json,application/json" onChange={take}>
      {(props) => (
        <Button
          {...props}
          size="xs"
          variant="default"
          leftSection={<IconFileImport size={14} />}
          loading={store.isPending}
          data-testid="import-machine"
        >
          Import a calibration
        </Button>
      )}
    </FileButton>
  );
}
