import { Button, FileButton, Group, Loader, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconFileUpload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { sentence } from '@/api/client';

const MAX_BYTES = 8_000_000;
const SETTLED_MS = 500;

interface Props<Answer> {
  /** What the button says. */
  choose: string;
  /** The formats, while no file is chosen. */
  about: string;
  /** How to write which part of the file is meant. */
  example: string;
  /** What was taken of it. */
  taken: ReactNode;
  /** What else the answer depends on: with another one, the file is read again. */
  asked?: string;
  read: (file: File, part: string, signal: AbortSignal) => Promise<Answer>;
  /** Gets what the server has read; null where it refuses the file. */
  onRead: (found: Answer | null, file: File) => void;
  testId: string;
}

/** A recorded file that the server reads, and which part of it: it is read again when the part changes. */
export function RecordedFile<Answer>(props: Props<Answer>) {
  const { choose, about, example, taken, asked = '', read, onRead, testId } = props;
  const [file, setFile] = useState<File | null>(null);
  const [part, setPart] = useState('');
  const wanted = JSON.stringify([file?.name, file?.size, file?.lastModified, part, asked]);
  const [settled] = useDebouncedValue(wanted, SETTLED_MS);
  const chooseAgain = useRef<() => void>(null);
  const told = useRef<unknown>(undefined);
  const tooLarge = file !== null && file.size > MAX_BYTES;
  const { data, error, isFetching } = useQuery({
    queryKey: ['recorded', testId, settled],
    queryFn: ({ signal }) => read(file!, part, signal),
    enabled: file !== null && !tooLarge && settled === wanted,
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
  });
  const refusal = tooLarge
    ? `${file.name} is larger than ${MAX_BYTES / 1e6} MB: take a part of it, as with head -n 100000.`
    : error && sentence(error);
  const answer = refusal ? null : data;
  useEffect(() => {
    const key = answer ?? refusal;
    if (!file || answer === undefined || told.current === key) return;
    told.current = key;
    onRead(answer, file);
  }, [answer, refusal, file, onRead]);
  return (
    <div>
      <Group gap="sm">
        <FileButton
          resetRef={chooseAgain}
          onChange={(next) => {
            if (!next) return;
            setFile(next);
            if (next.name !== file?.name) setPart(''); // it was about another file
            chooseAgain.current?.(); // the same file, once it was mended
          }}
        >
          {(button) => (
            <Button
              {...button}
              variant="default"
              leftSection={<IconFileUpload size={16} />}
              data-testid={`${testId}-file`}
            >
              {choose}
            </Button>
          )}
        </FileButton>
        {file && (
          <TextInput
            aria-label={`Part of ${file.name}`}
            placeholder={example}
            value={part}
            title={`Which part of the file: ${example}`}
            flex="1 1 220px"
            maw={420}
            data-testid={`${testId}-part`}
            onChange={(event) => setPart(event.currentTarget.value)}
          />
        )}
        {isFetching && <Loader size="xs" />}
      </Group>
      {refusal ? (
        <Text size="sm" c="red" mt={6} role="alert" data-testid={`${testId}-error`}>
          {refusal}
        </Text>
      ) : (
        <Text size="sm" c="dimmed" mt={6} data-testid={`${testId}-about`}>
          {taken || about}
        </Text>
      )}
    </div>
  );
}
