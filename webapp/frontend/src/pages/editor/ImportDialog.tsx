import {
  Button,
  FileButton,
  Group,
  List,
  Modal,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
} from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { useState } from 'react';
import { ApiError, api, sentence } from '@/api/client';
import { useCatalogue } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import { QuantityInput } from '@/components/QuantityInput';
import { BIT_RATE } from '@/format/quantities';
import type { Drawing } from '@/cluster/drawing';
import { fileKindOf, isComplete, KINDS, type Kind, textKindOf } from './importKinds';

interface Props {
  opened: boolean;
  onClose: () => void;
  onTake: (drawing: Drawing) => void;
}

/** Imports a cluster file or the drawing of another program, chosen or pasted. One with errors changes nothing. */
export function ImportDialog({ opened, onClose, onTake }: Props) {
  const presets = useCatalogue().data?.presets ?? [];
  const [text, setText] = useState('');
  const [file, setFile] = useState('');
  const [chosen, setKind] = useState<Kind | null>(null);
  const [preset, setPreset] = useState('raspberry-pi-4');
  const [bitPerS, setBitPerS] = useState(100e6);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const kind = chosen ?? textKindOf(text);
  const read = async (given: string, as: Kind, name: string) => {
    setError(null);
    setBusy(true);
    try {
      const body = { text: given, kind: as, name, preset, bit_per_s: bitPerS };
      onTake(await api.post<Drawing>('/clusters/import', body));
      setText('');
      setKind(null);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const take = async (given: File | null) => {
    if (!given) return;
    const content = await given.text();
    const as = fileKindOf(given.name) ?? textKindOf(content);
    setText(content);
    setFile(given.name);
    setKind(as);
    if (isComplete(as)) await read(content, as, given.name); // the others may need a preset and a rate first
  };
  const more = error instanceof ApiError ? error.fields.slice(1) : [];
  return (
    <Modal opened={opened} onClose={onClose} title="Import a drawing" size="lg" centered>
      <Stack>
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm" c="dimmed">
            A cluster file in TOML, YAML or JSON, as the command line reads it and Export writes it; or a
            drawing of MiniEdit (.mn), in GraphML or in GML.
          </Text>
          <FileButton accept={[...KINDS.flatMap(({ ends }) => ends), 'text/plain'].join()} onChange={take}>
            {(props) => (
              <Button
                {...props}
                variant="default"
                size="xs"
                style={{ flex: 'none' }}
                leftSection={<IconFileUpload size={15} />}
                data-testid="import-file"
              >
                Choose a file
              </Button>
            )}
          </FileButton>
        </Group>
        <Textarea
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setFile('');
            setKind(null);
          }}
          rows={12}
          spellCheck={false}
          aria-label="Text of the drawing"
          data-testid="import-text"
          placeholder={
            'name = "two-boards"\nsource = "desk"\n\n[[device]]\nname = "desk"\npreset = "raspberry-pi-5"\n…'
          }
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } }}
        />
        <SimpleGrid cols={3} spacing="sm">
          <Select
            label="Format"
            size="xs"
            value={kind}
            allowDeselect={false}
            data={KINDS.map(({ kind: value, label }) => ({ value, label }))}
            onChange={(value) => setKind(value as Kind)}
            data-testid="import-kind"
          />
          {!isComplete(kind) && (
            <>
              <Select
                label="Preset of the devices"
                size="xs"
                searchable
                value={preset}
                allowDeselect={false}
                data={presets.map(({ name, title }) => ({ value: name, label: title || name }))}
                onChange={(value) => value && setPreset(value)}
                data-testid="import-preset"
              />
              <QuantityInput
                label="Rate of links that state none"
                quantity={BIT_RATE}
                value={bitPerS}
                onChange={(value) => value && setBitPerS(value)}
                testId="import-bit_per_s"
              />
            </>
          )}
        </SimpleGrid>
        {error !== null && <ErrorPanel message={sentence(error)} />}
        {more.length > 0 && (
          <List size="xs">
            {more.map(({ path, message }) => (
              <List.Item key={path + message}>
                {path}: {message}
              </List.Item>
            ))}
          </List>
        )}
        <Group justify="flex-end">
          <Button
            onClick={() => read(text, kind, file)}
            loading={busy}
            disabled={!text.trim()}
            data-testid="import-take"
          >
            Import
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
