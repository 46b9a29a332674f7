import { ActionIcon, Button, FileButton, Table, Text, Tooltip } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconFileImport, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { api, sentence } from '@/api/client';
import { useChange, useMayWrite } from '@/api/queries';
import type { CalibratedMachine } from '@/api/types';
import { Panel } from '@/components/Panel';
import { useConfirm } from '@/components/useConfirm';
import { flopRate, human } from '@/format/units';
import classes from './machines.module.css';
import { machineName, readCalibration } from './profile';

const refused = (title: string) => (error: Error) =>
  notifications.show({ color: 'red', title, message: sentence(error), autoClose: false });

/** Machines that were calibrated elsewhere: the editor offers them as devices. */
export function Profiles() {
  const mayWrite = useMayWrite();
  const query = useQuery({
    queryKey: ['machines'],
    queryFn: ({ signal }) => api.get<CalibratedMachine[]>('/machines', signal),
  });
  return (
    <Panel
      title="Calibrated machines"
      about="Devices for clusters, as ./loom calibrate --output FILE measured them elsewhere."
      testId="profiles"
      extra={mayWrite && <ImportButton />}
      flush
    >
      {query.data?.length ? (
        <ProfileTable machines={query.data} mayWrite={mayWrite} />
      ) : (
        <Text c={query.isError ? 'var(--loom-bad)' : 'dimmed'} size="sm" px="md" py="md">
          {query.isError ? sentence(query.error) : 'No machine was imported.'}
        </Text>
      )}
    </Panel>
  );
}

function ImportButton() {
  const store = useChange('machines', async (file: File) =>
    api.post<CalibratedMachine>('/machines', {
      name: machineName(file.name),
      calibration: await readCalibration(file),
    }),
  );
  const remember = useChange('catalogue', async () => undefined);
  const take = (file: File | null) =>
    file &&
    store.mutate(file, {
      onSuccess: ({ name }) => {
        remember.mutate(undefined);
        notifications.show({ message: `${name} is among the devices of the editor.` });
      },
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

interface TableProps {
  machines: readonly CalibratedMachine[];
  mayWrite: boolean;
}

function ProfileTable({ machines, mayWrite }: TableProps) {
  const [dialog, ask] = useConfirm();
  const remove = useChange('machines', (name: string) => api.delete<void>(`/machines/${name}`));
  const question = (name: string) => ({
    title: `Remove ${name}?`,
    text: 'The editor offers it no longer. Clusters that use it keep its values.',
    action: 'Remove',
    onConfirm: () => remove.mutate(name, { onError: refused(name) }),
  });
  return (
    <div className={classes.scroll}>
      {dialog}
      <Table className={classes.table} verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Device</Table.Th>
            <Table.Th>Processor</Table.Th>
            <Table.Th>Peak of a core</Table.Th>
            <Table.Th>Memory of a core</Table.Th>
            <Table.Th>Measured</Table.Th>
            <Table.Th>Digest</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {machines.map((machine) => (
            <Table.Tr key={machine.name} data-testid={`machine-${machine.name}`}>
              <Table.Td>{machine.name}</Table.Td>
              <Table.Td>{machine.host}</Table.Td>
              <Table.Td>{flopRate(machine.flop_per_s)}</Table.Td>
              <Table.Td>{human(machine.memory_byte_per_s, 'B/s')}</Table.Td>
              <Table.Td>{machine.source}</Table.Td>
              <Table.Td>
                <code>{machine.digest}</code>
              </Table.Td>
              <Table.Td>
                {mayWrite && (
                  <Tooltip label={`Remove ${machine.name}`}>
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      aria-label={`Remove ${machine.name}`}
                      onClick={() => ask(question(machine.name))}
                    >
                      <IconTrash size={16} />
                    </ActionIcon>
                  </Tooltip>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
