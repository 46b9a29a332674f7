import { describe, expect, it } from 'vitest';
import { endsOf, linkChoices, linkName, linkTitle, linkWords, namedWords } from './links';

describe('parallel links', () => {
  const links = [
    { a: 'desk', b: 'hub' },
    { a: 'desk', b: 'hub', parallel: 2 },
  ];

  it('have names and titles of their own', () => {
    expect(links.map(linkName)).toEqual(['desk--hub', 'desk--hub--2']);
    expect(links.map(linkTitle)).toEqual(['desk – hub', 'desk – hub (2)']);
    expect(linkChoices(links)[1]).toEqual({ value: 'desk--hub--2', label: 'desk – hub (2)' });
  });

  it('are told apart in a sentence, in either direction', () => {
    expect(links.map((link) => linkWords(link, 'backward'))).toEqual(['hub → desk', 'hub → desk (2)']);
    expect(namedWords('desk--hub--2')).toBe('desk–hub (2)');
    expect(namedWords('desk--hub', 'forward')).toBe('desk → hub');
  });

  it('are read from their names; anything else stays as it is', () => {
    expect(endsOf('pi-1--hub--12')).toEqual({ a: 'pi-1', b: 'hub', parallel: 12 });
    expect(endsOf('pi-1')).toBeNull();
    expect(namedWords('pi-1')).toBe('pi-1');
  });
});
