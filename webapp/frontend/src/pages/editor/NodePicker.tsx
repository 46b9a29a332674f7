import { Modal, Text, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { type KeyboardEvent, useId, useState } from 'react';
import classes from './editor.module.css';

export interface Choice {
  name: string;
  about: string;
}

interface Props {
  opened: boolean;
  title: string;
  /** What Enter does, such as “links”. */
  hint: string;
  choices: readonly Choice[];
  onPick: (name: string) => void;
  onClose: () => void;
}

/** A list of nodes to pick one from: type a part of its name, choose with the arrow keys, press Enter. */
export function NodePicker(props: Props) {
  return (
    <Modal
      opened={props.opened}
      onClose={props.onClose}
      title={props.title}
      size="sm"
      yOffset="12vh"
      transitionProps={{ duration: 0 }}
    >
      <List {...props} />
    </Modal>
  );
}

function List({ hint, choices, onPick, onClose }: Props) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const words = text.trim().toLowerCase();
  const shown = choices.filter(({ name, about }) => `${name} ${about}`.toLowerCase().includes(words));
  const chosen = Math.min(at, shown.length - 1);
  const pick = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    onPick(choice.name);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter') pick(shown[chosen]);
    else if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, shown.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <TextInput
        data-autofocus
        role="combobox"
        aria-expanded
        aria-controls={id}
        aria-activedescendant={shown[chosen] ? `${id}-${chosen}` : undefined}
        aria-label="Part of a name"
        placeholder="Type a part of its name"
        leftSection={<IconSearch size={15} />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
        data-testid="picker-text"
      />
      <div id={id} role="listbox" aria-label="Nodes" className={classes.choices}>
        {shown.map((choice, index) => (
          <div
            key={choice.name}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            ref={index === chosen ? (row) => row?.scrollIntoView({ block: 'nearest' }) : undefined}
            className={classes.choice}
            onClick={() => pick(choice)}
            onKeyDown={onKey}
            data-testid={`pick-${choice.name}`}
          >
            <b>{choice.name}</b>
            <small>{choice.about}</small>
          </div>
        ))}
      </div>
      <Text size="xs" c="dimmed" mt={8}>
        {shown.length ? `↑ ↓ choose, Enter ${hint}, Esc closes.` : 'No node has this name.'}
      </Text>
    </>
  );
}
