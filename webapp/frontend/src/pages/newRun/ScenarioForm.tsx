import { Button, Group, Select, Text } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import { useTraces } from '@/api/queries';
import type { Change, ClusterSpec, Scenario } from '@/api/types';
import { seconds } from '@/format/units';
import type { Draft } from '@/run/request/draft';
import { RecordedFile } from './RecordedFile';
import { linksOf, onLink } from './scenario';
import { linkChoices, linkName } from '@/format/links';

interface Props {
  draft: Draft;
  cluster: ClusterSpec | undefined;
  set: (patch: Partial<Draft>) => void;
}

const ABOUT =
  'No changes at set times. A file has recorded rates (Mahimahi, HSDPA, Ghent, FCC, UCC, Lumos5G, CSV), or changes (TOML, JSON).';

/** Changes of the cluster at set times: none, an example trace of a link's rate, recorded rates, or a file. */
export function ScenarioForm({ draft, cluster, set }: Props) {
  const traces = useTraces();
  const [chosen, setChosen] = useState<string | null>(null);
  const [about, setAbout] = useState(
    draft.scenario.changes.length > 0 ? 'The changes of the earlier run.' : '',
  );
  const [wrong, setWrong] = useState('');
  const [files, setFiles] = useState(0);
  const { changes } = draft.scenario;
  const links = cluster?.links.map(linkName) ?? [];
  const used = linksOf(draft.scenario);
  const link = used.length === 1 && links.includes(used[0]!) ? used[0] : links[0];
  const take = (scenario: Scenario, text: string) => {
    set({ scenario });
    setAbout(text);
    setWrong('');
  };
  const forget = () => {
    take({ changes: [] }, '');
    setChosen(null);
    setFiles(files + 1);
  };
  const example = async (name: string | null) => {
    forget();
    const row = traces.data?.find((one) => one.name === name);
    if (!row) return;
    try {
      const scenario = await api.get<Scenario>(`/traces/${row.name}`);
      take(link ? onLink(scenario, link) : scenario, row.about);
      setChosen(row.name);
    } catch (error) {
      setWrong(sentence(error));
    }
  };
  const read = (file: File, part: string, signal: AbortSignal) => {
    const form = new FormData();
    form.append('file', file);
    form.append('link', link ?? '');
    form.append('options', part);
    return api.upload<Scenario>('/scenarios', form, signal);
  };
  return (
    <>
      <Group gap="sm" align="flex-end" mb="sm">
        <Select
          label="Example trace"
          placeholder="none"
          clearable
          value={chosen}
          w={220}
          data-testid="trace"
          data={traces.data?.map((row) => ({ value: row.name, label: row.name })) ?? []}
          onChange={(name) => void example(name)}
        />
        {changes.length > 0 && used.length === 1 && (
          <Select
            label="Link"
            data={linkChoices(cluster?.links ?? [])}
            value={used[0] ?? null}
            allowDeselect={false}
            w={220}
            data-testid="trace-link"
            onChange={(next) => next && set({ scenario: onLink(draft.scenario, next) })}
          />
        )}
        {changes.length > 0 && (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<IconX size={16} />}
            data-testid="scenario-clear"
            onClick={forget}
          >
            No changes
          </Button>
        )}
      </Group>
      <RecordedFile
        key={files}
        choose="File of rates or changes"
        about={ABOUT}
        example="all: or until_s=60, only=…"
        taken={changes.length > 0 && `${about} ${summary(changes)}`}
        read={read}
        onRead={(scenario, file) => {
          setChosen(null);
          take(scenario ?? { changes: [] }, `From ${file.name}.`);
        }}
        testId="scenario"
      />
      {wrong && (
        <Text size="sm" c="red" mt="xs" role="alert">
          {wrong}
        </Text>
      )}
    </>
  );
}

function summary(changes: Change[]): string {
  const last_s = Math.max(...changes.map((change) => change.at_s));
  return `${changes.length} ${changes.length === 1 ? 'change' : 'changes'} until ${seconds(last_s)} of virtual time.`;
}
