/** What comes before the words of a command: the session says it, `./loom` of a checkout or `edgeloom`. */
let program = 'edgeloom';

export function setProgram(given: string): void {
  program = given;
}

/** A command as one types it on the server's machine: `command('worker --queue plan')`. */
export const command = (words: string): string => `${program} ${words}`;
