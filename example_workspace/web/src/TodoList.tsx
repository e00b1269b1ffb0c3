import { useEffect, useState, type JSX } from 'react';
import { listTodos, setDone, type Todo } from './api.js';
import { formatDue, isOverdue } from './due.js';

export function TodoList(): JSX.Element {
  const [todos, setTodos] = useState<Todo[]>([]);
  const [problem, setProblem] = useState('');
  const fail = (error: Error): void => setProblem(error.message);

  useEffect(() => {
    listTodos().then(setTodos, fail);
  }, []);

  function toggle(todo: Todo): void {
    setDone(todo.id, !todo.done).then(
      (changed) => setTodos((all) => all.map((one) => (one.id === changed.id ? changed : one))),
      fail,
    );
  }

  if (problem) return <p role="alert">{problem}</p>;
  return (
    <ul>
      {todos.map((todo) => (
        <li key={todo.id} className={isOverdue(todo) ? 'overdue' : undefined}>
          <label>
            <input type="checkbox" checked={todo.done} onChange={() => toggle(todo)} />
            {todo.title}
          </label>
          {todo.due && <time dateTime={todo.due}>{formatDue(todo.due)}</time>}
        </li>
      ))}
    </ul>
  );
}
