import { Button, NumberInput, Textarea } from '@mantine/core';
import { IconSend2 } from '@tabler/icons-react';
import { useState, type KeyboardEvent } from 'react';
import { ask } from '@/run/feed/commands';
import classes from './service.module.css';

interface Props {
  runId: number;
  /** The longest answer that the run gives, in tokens. */
  most: number;
  /** Gets the name of a request that was sent. */
  onAsked: (id: string) => void;
}

/** A prompt and how long its answer may be; Enter sends, Shift+Enter makes a line. */
export function AskForm({ runId, most, onAsked }: Props) {
  const [text, setText] = useState('');
  const [newTokens, setNewTokens] = useState(most);
  const [sending, setSending] = useState(false);
  const send = async () => {
    if (!text.trim() || sending) return;
    setSending(true);
    setText('');
    const id = await ask(runId, text, newTokens);
    setSending(false);
    if (id === null) setText((next) => next || text);
    else onAsked(id);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void send();
  };
  return (
    <form
      className={classes.ask}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Textarea
        className={classes.text}
        autosize
        minRows={1}
        maxRows={4}
        size="xs"
        aria-label="Prompt"
        placeholder="Text that the model continues; Enter sends"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
        data-testid="ask-text"
      />
      <NumberInput
        w={104}
        size="xs"
        min={1}
        max={most}
        allowDecimal={false}
        suffix=" tokens"
        aria-label="Tokens of the answer, at most"
        value={newTokens}
        onChange={(value) => typeof value === 'number' && setNewTokens(value)}
        data-testid="ask-tokens"
      />
      <Button
        type="submit"
        size="xs"
        loading={sending}
        disabled={!text.trim()}
        leftSection={<IconSend2 size={14} />}
        data-testid="ask-send"
      >
        Send
      </Button>
    </form>
  );
}
