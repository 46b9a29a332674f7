import { Button, FileButton, Group, Select, Text, TextInput } from '@mantine/core';
import { IconUpload, IconX } from '@tabler/icons-react';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import { useTraces } from '@/api/queries';
import type { Change, ClusterSpec, Scenario } from '@/api/types';
import { seconds } from '@/format/units';
import type { Draft } from '@/run/request/draft';
import { linksOf, onLink } from './scenario';
import { linkChoices, linkName } from '@/format/links';

interface Props {
  draft: Draft;
  cluster: ClusterSpec | undefined;
  set: (patch: Partial<Draft>) => void;
}

/** Changes of the cluster at set times: none, an example trace of a link's rate, recorded rates, or a file. */
export function ScenarioForm({ draft, cluster, set }: Props) {
  const traces = useTraces();
  const [chosen, setChosen] = useState<string | null>(null);
  const [about, setAbout] = useState(
    draft.scenario.changes.length > 0 ? 'The changes of the earlier run.' : '',
  );
  const [options, setOptions] = useState('');
  const [wrong, setWrong] = useState('');
  const { changes } = draft.scenario;
  const links = cluster?.links.map(linkName) ?? [];
  const used = linksOf(draft.scenario);
  const take = async (text: string, name: string | null, answer: Promise<Scenario>) => {
    try {
      const scenario = await answer;
      const first = links[0];
      const known = linksOf(scenario).every((link) => links.includes(link));
      set({ scenario: name && !known && first ? onLink(scenario, first) : scenario });
      setAbout(text);
      setChosen(name);
      setWrong('');
    } catch (error) {
      setWrong(sentence(error));
    }
  };
  const upload = (file: File | null) => {
    if (!file) return;
    const form = new FormData();
    form.append('file', file);
    form.append('link', links[0] ?? '');
    form.append('options', options);
    void take(`From ${file.name}.`, null, api.upload<Scenario>('/scenarios', form));
  };
  return (
    <>
      <Group gap="sm" align="flex-end">
        <Select
          label="Example trace"
          placeholder="none"
          clearable
          value={chosen}
          w={220}
          data-testid="trace"
          data={traces.data?.map((row) => ({ value: row.name, label: row.name })) ?? []}
          onChange={(name) => {
            const row = traces.data?.find((one) => one.name === name);
            if (row) void take(row.about, row.name, api.get<Scenario>(`/traces/${row.name}`));
            else {
              set({ scenario: { changes: [] } });
              setChosen(null);
            }
          }}
        />
        {changes.length > 1 && used.length === 1 && (
          <Select
            label="drives the link"
            data={linkChoices(cluster?.links ?? [])}
            value={used[0] ?? null}
            allowDeselect={false}
            w={220}
            data-testid="trace-link"
            onChange={(link) => link && set({ scenario: onLink(draft.scenario, link) })}
          />
        )}
        <TextInput
          label="Part of a file"
          placeholder="all: or until_s=60"
          value={options}
          w={180}
          data-testid="scenario-options"
          onChange={(event) => setOptions(event.currentTarget.value)}
        />
        <FileButton onChange={upload}>
          {(props) => (
            <Button
              {...props}
              variant="default"
              leftSection={<IconUpload size={16} />}
              data-testid="scenario-upload"
            >
              File of rates or changes
            </Button>
          )}
        </FileButton>
        {changes.length > 0 && (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<IconX size={16} />}
            data-testid="scenario-clear"
            onClick={() => {
              set({ scenario: { changes: [] } });
              setChosen(null);
            }}
          >
            None
          </Button>
        )}
      </Group>
      {wrong && (
        <Text size="sm" c="red" mt="xs" role="alert" data-testid="scenario-error">
          {wrong}
        </Text>
      )}
      <Text size="sm" c="dimmed" mt="xs" data-testid="scenario-about">
        {changes.length === 0 ? 'No changes at set times.' : `${about} ${summary(changes)}`}
      </Text>
    </>
  );
}

function summary(changes: Change[]): string {
  const last_s = Math.max(...changes.map((change) => change.at_s));
  return `${changes.length} ${changes.length === 1 ? 'change' : 'changes'} until ${seconds(last_s)} of virtual time.`;
}
